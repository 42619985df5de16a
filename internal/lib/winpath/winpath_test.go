package winpath

import (
	"errors"
	"testing"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`C:\x`:                  `C:\x`,
		`c:/x/y`:                `C:\x\y`,
		`/c/x`:                  `C:\x`,
		`/c`:                    `C:\`,
		`/cygdrive/d/x`:         `D:\x`,
		`/mnt/c/x`:              `C:\x`,
		`/mnt/cx`:               `D:\mnt\cx`,
		`\\?\C:\x`:              `C:\x`,
		`\\?\c:\a\..\x`:         `C:\x`,
		`\\?\UNC\srv\share\x`:   `\\srv\share\x`,
		`\\srv\share\a\..\..\b`: `\\srv\share\b`,
		`//srv/share/b`:         `\\srv\share\b`,
		`x`:                     `D:\work\x`,
		`..\x`:                  `D:\x`,
		`..\..\..\x`:            `D:\x`,
		`\x`:                    `D:\x`,
		`a.txt.`:                `D:\work\a.txt`,
		`a.txt. . `:             `D:\work\a.txt`,
		`sub. \.env`:            `D:\work\sub\.env`,
		`console.txt`:           `D:\work\console.txt`,
		`com10`:                 `D:\work\com10`,
	} {
		if got, err := Canonical(in, `D:\work`); err != nil || got != want {
			t.Errorf("Canonical(%s) = %s, %v, want %s", in, got, err, want)
		}
	}
	for in, want := range map[string]error{
		`C:x`:               ErrDriveRelative,
		`C:`:                ErrDriveRelative,
		`NUL`:               ErrDevice,
		`nul.txt`:           ErrDevice,
		`a\con`:             ErrDevice,
		`aux .c`:            ErrDevice,
		`com1`:              ErrDevice,
		`\\.\C:`:            ErrDevice,
		`\\?\GLOBALROOT\x`:  ErrDevice,
		`a.txt:s`:           ErrStream,
		`C:\a.txt::$DATA`:   ErrStream,
		`\\srv\share\a:b\c`: ErrStream,
	} {
		if got, err := Canonical(in, `D:\work`); !errors.Is(err, want) {
			t.Errorf("Canonical(%s) = %s, %v, want %v", in, got, err, want)
		}
	}
}

// The canonical form is its own canonical form.
func FuzzCanonical(f *testing.F) {
	f.Add(`/c/a/../b. `)
	f.Add(`\\?\UNC\a\b\c`)
	f.Fuzz(func(t *testing.T, p string) {
		got, err := Canonical(p, `D:\work`)
		if err != nil {
			return
		}
		again, err := Canonical(got, `E:\other`)
		if err != nil || again != got {
			t.Errorf("Canonical(%q) = %q, again %q, %v", p, got, again, err)
		}
	})
}
