#include <assert.h>
#include "total.h"

int main(void) {
    assert(total(0, 0) == 0);
    assert(total(2, 3) == 5);
    return 0;
}
