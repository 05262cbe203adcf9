/* comma.h: a host that writes 0,5: a locale with a decimal comma, one that is installed or made in `dir`. */
#ifndef TESTS_SUPPORT_COMMA_H
#define TESTS_SUPPORT_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* False, and said so: there is none, and none can be made. */
static inline bool use_comma(const char *dir)
{
    static const char *const comma[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "ps_AF.UTF-8"};
    char command[256], half[8];
    bool found = false;
    for (int made = 0; made < 2 && !found; made++) {
        snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/out 2>&1", dir,
                 dir);
        if (made && (system(command) || setenv("LOCPATH", dir, 1)))
            break;
        for (size_t i = 0; i < sizeof comma / sizeof *comma && !found; i++)
            found = setlocale(LC_ALL, comma[i]) != NULL;
    }
    snprintf(half, sizeof half, "%.1f", 0.5);
    if (!found)
        printf("note: no locale with a decimal comma is installed, or can be made\n");
    return found && half[1] == ',';
}

#endif
