#include <stdio.h>

#if MAIN
int main(void) { return puts("hello from an image") < 0; }
#else
int part(int n) { return n < 2 ? n : part(n - 1) + part(n - 2); }
#endif
