"""Messages over HTTP: taken, and answered with 202 only once Kafka has acknowledged them.

A request passes the guard of the API, then its route. `bodies.py` decompresses it within a bound,
`messages.py` finds the session of each message, and `intake.py` queues them for the sender that a
`Publisher` has too. `repeats.py` gives a repeated `Idempotency-Key` the first answer.
"""
