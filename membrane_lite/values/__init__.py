"""What flows through the house: a page per family, a class per thing that happens. Nothing here acts."""
