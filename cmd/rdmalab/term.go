package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/goverbs/goverbs/internal/lab"
)

func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// makeRaw hands the terminal over to the guest: each key goes there as it is, and the guest's terminal does what this one
// would have done. The terminal is its old self after restore.
func makeRaw(f *os.File) (restore func(), tty *lab.TTY, err error) {
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	sizes := make(chan [2]uint16, 1)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
		for range changed {
			if rows, cols := winsize(fd); rows > 0 {
				sizes <- [2]uint16{rows, cols}
			}
		}
	}()
	rows, cols := winsize(fd)
	restore = func() {
		signal.Stop(changed)
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, old)
	}
	return restore, &lab.TTY{Rows: rows, Cols: cols, Resize: sizes}, nil
}

func winsize(fd int) (rows, cols uint16) {
	ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return ws.Row, ws.Col
}
