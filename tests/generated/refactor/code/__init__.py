"""The code of a project, as refactorings read and write it."""
