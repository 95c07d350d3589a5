#include <stdio.h>

/* Ends the test where two numbers differ. */
#define SAME(is, ought)                                              \
    do {                                                             \
        if ((is) != (ought)) {                                       \
            printf("%s:%d: %s is wrong\n", __FILE__, __LINE__, #is); \
            return 1;                                                \
        }                                                            \
    } while (0)
