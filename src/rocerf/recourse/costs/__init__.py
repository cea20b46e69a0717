"""What a change costs a person: norms, percentiles, price tables, and whatever else follows the protocol."""
