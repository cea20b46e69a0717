"""Files and folders that are whole or not there: written in one step, sealed with checksums, read with one error."""
