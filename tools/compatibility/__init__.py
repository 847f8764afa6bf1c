"""What nas-ext can be installed with: wheel and sdist, extras alone, lowest and newest versions, on several Pythons."""
