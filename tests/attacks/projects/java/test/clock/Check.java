package clock;

/** Compares for tests. */
final class Check {
    private Check() {}

    static void same(int is, int ought) {
        if (is != ought) {
            throw new AssertionError(is + " is not " + ought);
        }
    }
}
