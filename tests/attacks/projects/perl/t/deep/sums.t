use strict;
use warnings;
use lib 't/lib';
use Test::More tests => 2;
use Near;
use Sums;

ok(Near::near(Sums::add(0, 0), 0));
ok(Near::near(Sums::add(2, 3), 5));
