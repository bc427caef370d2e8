"""The HTTP API: each answer is one generation, as of one snapshot.

A request passes the guard (`guard.py`: sizes, tokens, rates), then its route (`routes.py`,
`control.py`, `conversations.py`), whose parameters `routing.py` reads from its annotations. A route
takes a snapshot first: the active generation and all positions, which are also the entity tag. Then
it reads documents of that generation and sends them as they are stored (`answers.py`). Every error
is a problem document (`problems.py`). `openapi.py` assembles the description from the same
annotations and `shapes.py`.
"""
