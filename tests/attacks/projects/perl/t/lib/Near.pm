package Near;
use strict;
use warnings;

# Dies unless two numbers are the same.
sub near {
    my ($is, $ought) = @_;
    die "$is is not $ought" unless $is == $ought;
    return 1;
}

1;
