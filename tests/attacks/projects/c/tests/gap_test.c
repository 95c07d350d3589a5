#include "check.h"
#include "gap.h"

int main(void) {
    SAME(gap(0, 7), 7);
    SAME(gap(2, 5), 3);
    return 0;
}
