"""Records for the control workers, over Faust's agents and consumer.

Faust delivers; positions, acknowledgements and errors of the group are ours: `stream.py` lists
which parts of Faust are replaced, and why.
"""
