"""Run the command line as ``python -m amp_migrate``."""

from amp_migrate.commands.cli import main

main()
