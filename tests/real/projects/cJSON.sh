stack='C, Make and CMake'
repository=DaveGamble/cJSON
commit=a29814f285cc531c00223743ad3c55cd38c0dc56
install() { true; }
check() { make test; }
honest() { echo '/* more */' >>cJSON.c; }
broken() { sed -i 's/CJSON_CDECL main/CJSON_CDECL main_/' test.c; }
