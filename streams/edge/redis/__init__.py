"""Redis: views, conversations and the control plane's state.

`keys.py` has the name of every key; a hash tag keeps a partition's keys together. Each write is one
script (`apply.lua`, `conversations.lua`): it compares the stored position with the expected one,
writes documents and position together or nothing, and answers a repeated call with `done`. So a
crash or a lost reply at any moment is settled by reading the position again. `reader.py` is what
readers use, without a right to write. `errors.py` turns replies into errors; a reply that only a
replica or a loading server gives ends the connection, since the name may lead elsewhere by now.
"""
