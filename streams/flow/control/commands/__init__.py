"""The compaction service: commands of `context.commands`, each carried out to one outcome.

A `command_worker` is assigned partitions; each is owned by a `command_partition`, whose
`command_log` is fenced and read to its end. A command is a `command_job`: a `service_job` plans in
threads (`planning`) and swaps in one transaction (`swap`), a `driver_job` steers the runtime.
"""
