stack='C++, CMake, Make and Meson'
repository=leethomason/tinyxml2
commit=3dcad8e3c38e7091ae3771bf63020027f91715ce
install() { cmake -S . -B build && echo /build/ >>.git/info/exclude; }
check() { cmake --build build && ctest --test-dir build; }
honest() { echo '// more' >>tinyxml2.cpp; }
broken() { sed -i 's|{ "amp", 3,|{ "amq", 3,|' tinyxml2.cpp; }
