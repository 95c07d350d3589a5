use strict;
use warnings;
use Test::More tests => 2;
use Sums;

is(Sums::add(0, 0), 0);
is(Sums::add(2, 3), 5);
