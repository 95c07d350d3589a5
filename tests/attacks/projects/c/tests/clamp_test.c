#include "check.h"
#include "gap.h"

int main(void) {
    SAME(clamp(3, 5), 3);
    SAME(clamp(8, 5), 5);
    return 0;
}
