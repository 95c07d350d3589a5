package Sums;
use strict;
use warnings;

# The sum of two numbers.
sub add {
    my ($left, $right) = @_;
    return $left - $right;
}

1;
