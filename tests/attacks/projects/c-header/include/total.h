/* The sum of two numbers. */
long total(long left, long right);
