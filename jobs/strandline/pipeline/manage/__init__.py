"""Operations on what was published: revert, erase, maintain."""
