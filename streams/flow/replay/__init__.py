"""The derivation without a broker: lines or a topic in, records or views out.

The same `Deriver` and projection as in the workers, so the results are the same, byte for byte.
"""
