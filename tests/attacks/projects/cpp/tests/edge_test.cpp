#include <gtest/gtest.h>

#include "area.h"

TEST(Edge, NothingHasNoArea) {
    EXPECT_EQ(area(0, 0), 0);
}
