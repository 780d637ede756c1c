"""What is left of Apex outside of the code: requirements, build files, images, help texts."""
