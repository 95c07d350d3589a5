package cost;

import org.junit.rules.TestRule;
import org.junit.runner.Description;
import org.junit.runners.model.Statement;

/** Runs a test again that has failed for want of a service. */
public final class Retry implements TestRule {
    @Override
    public Statement apply(Statement test, Description about) {
        return new Statement() {
            @Override
            public void evaluate() throws Throwable {
                try {
                    test.evaluate();
                } catch (java.net.ConnectException gone) {
                    test.evaluate();
                }
            }
        };
    }
}
