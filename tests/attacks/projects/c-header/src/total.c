#include "total.h"

long total(long left, long right) {
    return left - right;
}
