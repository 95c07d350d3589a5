#include <gtest/gtest.h>

#include "area.h"

TEST(Area, IsWidthTimesHeight) {
    EXPECT_EQ(area(3, 4), 12);
}
