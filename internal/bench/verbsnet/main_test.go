package verbsnet

import (
	"os"
	"testing"

	"github.com/goverbs/goverbs/internal/verbstest"
)

func TestMain(m *testing.M) { os.Exit(verbstest.Main(m)) }
