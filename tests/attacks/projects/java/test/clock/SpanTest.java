package clock;

/** What a span promises. */
public final class SpanTest {
    public static void main(String[] args) {
        Check.same(Span.minutes(2, 0), 120);
        Check.same(Span.minutes(1, 30), 90);
    }
}
