/* A program outside the tree: only the public header, only the public library. */
#include <petopt.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    const char *ok = po_status_name(PO_OK);
    const char *bad = po_status_name(PO_BAD_INPUT);
    printf("%s, %s\n", ok, bad);
    return strlen(ok) > 0 && strcmp(ok, bad) != 0 ? 0 : 1;
}
