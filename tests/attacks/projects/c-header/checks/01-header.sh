grep -q "long total(" include/total.h
