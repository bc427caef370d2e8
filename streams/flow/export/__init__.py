"""Exports: records as files of tables, each row once whatever interrupts it.

    rows ──▶ _pending/ ──▶ checkpoint names what moves where, and the new positions ──▶ moved

A commit is one atomic write of the checkpoint: what it names is moved (again) by the next process
that opens the export, and what lies in `_pending` without being named is deleted. Folders that
begin with an underscore are hidden from readers of Hive layouts, so a reader sees files that are
whole.
"""
