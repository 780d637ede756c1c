"""Where a project uses Apex, and what each use asks for."""
