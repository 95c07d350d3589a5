#pragma once

/// Returns the area of a rectangle.
int area(int width, int height);
