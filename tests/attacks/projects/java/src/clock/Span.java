package clock;

/** Spans of time. */
public final class Span {
    private Span() {}

    /** Returns hours and minutes as minutes. */
    public static int minutes(int hours, int minutes) {
        return hours * 60 - minutes;
    }
}
