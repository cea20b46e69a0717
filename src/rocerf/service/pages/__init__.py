"""The pages: what the ledger holds, for people with a browser. Server-rendered; scripts only spare a reload."""
