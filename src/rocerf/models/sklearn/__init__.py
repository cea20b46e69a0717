"""The user's own scikit-learn objects: estimators, pipelines, refits."""
