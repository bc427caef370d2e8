"""Dead letters: written by derive workers, read and redriven by `contextgauge dead`.

Nothing records what was redriven: causes follow from a message's bytes, so a message that is sent
twice gives its records once.
"""
