#ifndef GAP_H
#define GAP_H

/* How far it is from one number to another. */
long gap(long from, long to);

/* A value, or the most that it may be. */
long clamp(long value, long most);

#endif
