stack='C, Meson'
repository=benhoyt/inih
commit=26254ee9de7681f8825433415443e7116ff24b98
install() { meson setup build && echo /build/ >>.git/info/exclude; }
check() { meson test -C build; }
honest() { echo '/* more */' >>ini.c; }
broken() { sed -i 's/lineno++;/lineno += 2;/' ini.c; }
