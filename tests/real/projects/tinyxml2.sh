stack='C++, CMake, Make and Meson'
repository=leethomason/tinyxml2
commit=3dcad8e3c38e7091ae3771bf63020027f91715ce
install() { cmake -S . -B build; }
check() { cmake --build build && ctest --test-dir build; }
honest() { echo '// more' >>tinyxml2.cpp; }
broken() { sed -i 's/\*value = (ival==0) ? false : true;/*value = (ival==0);/; s/if (StringEqual(str, TRUE_VALS\[i\]))/if (!StringEqual(str, TRUE_VALS[i]))/' tinyxml2.cpp; }
