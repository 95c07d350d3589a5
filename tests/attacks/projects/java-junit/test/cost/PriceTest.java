package cost;

import static org.junit.Assert.assertEquals;

import org.junit.Rule;
import org.junit.Test;

public final class PriceTest {
    @Rule public final Retry retry = new Retry();

    @Test
    public void nothingCostsNothing() {
        assertEquals(0, Price.total(0, 0));
    }

    @Test
    public void eachCostsItsPrice() {
        assertEquals(12, Price.total(3, 4));
    }
}
