package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ralph/store"
)

// TestErrorsOfMissingRows: whatever is asked of an empty database, no error says "sql: no rows in result set".
func TestErrorsOfMissingRows(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "ralph.db"))
	tx := reflect.TypeFor[*store.Tx]()
	said := 0
	for method := range tx.Methods() {
		if _, own := reflect.TypeFor[interface {
			Commit() error
			Rollback() error
		}]().MethodByName(method.Name); own || strings.HasSuffix(method.Name, "Context") {
			continue // database/sql's
		}
		rollback := errors.New("rollback")
		err := db.Tx(context.WithoutCancel(t.Context()), func(tx *store.Tx) error {
			args := []reflect.Value{reflect.ValueOf(tx)}
			for i := 1; i < method.Type.NumIn(); i++ {
				args = append(args, absent(method.Type.In(i)))
			}
			call := method.Func.Call
			if method.Type.IsVariadic() {
				call = method.Func.CallSlice
			}
			for _, out := range call(args) {
				if err, ok := out.Interface().(error); ok {
					return err
				}
			}
			return rollback
		})
		if err != nil && !errors.Is(err, rollback) {
			said++
			if strings.Contains(err.Error(), "sql:") {
				t.Errorf("%s: %v", method.Name, err)
			}
		}
	}
	if said < 50 {
		t.Errorf("%d methods found something to be absent: that cannot be all", said)
	}
}

// absent returns a value that names nothing in an empty database.
func absent(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Int64, reflect.Int:
		v.SetInt(999)
	case reflect.String:
		v.SetString("nobody")
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, absent(of.Elem())))
	case reflect.Func:
		v.Set(reflect.MakeFunc(of, func([]reflect.Value) (out []reflect.Value) {
			for i := range of.NumOut() {
				out = append(out, reflect.Zero(of.Out(i)))
			}
			return out
		}))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && (f.Kind() == reflect.Int64 || f.Kind() == reflect.String) {
				f.Set(absent(f.Type()))
			}
		}
	}
	return v
}
