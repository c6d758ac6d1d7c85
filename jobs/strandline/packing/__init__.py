"""What a cluster needs of Strandline, in one folder: wheel, packed environment, locked jars."""
