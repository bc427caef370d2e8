"""What commands print: figures, tables and boxes, as wide as the terminal has room for.

`output.py` has the two consoles and `lines.py` standard output without rich, for what is piped.
`figures.py` has every format of a figure: a `~` stands before what is estimated, and what is not
known is shown as unknown, never as 0.
"""
