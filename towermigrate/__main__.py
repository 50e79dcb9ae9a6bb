"""`python -m towermigrate`."""

from towermigrate.cli import main

if __name__ == "__main__":
    main()
