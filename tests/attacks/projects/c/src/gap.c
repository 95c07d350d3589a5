#include "gap.h"

long gap(long from, long to) {
    return to + from;
}

long clamp(long value, long most) {
    return value > most ? most : value;
}
