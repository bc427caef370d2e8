"""The command line: one module for each command, one folder for each with several.

`app.py` names the module of each command, which is imported when it runs (`lazy.py`): a status
line pays for no Kafka client. A command reads its options, asks `streams/wiring` for what it needs,
and prints with `screen/`. Sessions come from the views in Redis (`stored.py`), from transcripts
that are derived in this process (`transcripts.py`), or over the API (`api_client.py`); what takes a
path, an id or nothing looks in `local_session.py`. Errors end a command with one line and a code of
`exits.py`.
"""
